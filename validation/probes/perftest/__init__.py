"""perftest as an instrument: its command lines, its reports, what it complains of."""
