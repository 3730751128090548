"""Device modules by name: ours, and third parties' by entry point.

``paisoar.switches`` holds one object a switch OS, ``paisoar.nics`` one a NIC
family; names are those that ``fabric.yaml`` uses.
"""
