"""One module a command or command group; none of them holds logic."""
