"""Traffic suites, judgement, certificates and the gate."""
