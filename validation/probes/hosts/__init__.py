"""Real traffic between real hosts over SSH: what every instrument of measuring shares."""
