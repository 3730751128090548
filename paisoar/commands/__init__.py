"""One module a command or command group; none of them holds logic."""

from paisoar.commands.check import check
from paisoar.commands.init import init

COMMANDS = (init, check)
GROUPS = {}
