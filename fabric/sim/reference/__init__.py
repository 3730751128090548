"""The simulator with the semantics of HPCC's ns-3 model, event for event.

Runs of HPCC's files (.topo, .flow) come out as that simulator has them, random
marks included: see ``docs`` and ``paisoar bench sim --fidelity``. How it works:

* ``topofile``, ``flowfile``, ``pathfile``, ``dcqcn``: people's files and options;
* ``wiring``, ``memory``, ``columns``: ports, routes and the engine's arrays;
* ``loop``, ``wheel``, ``host``, ``switch``, ``rate``, ``routing``, ``randoms``: the engine;
* ``simulation``, ``result``: a run and what it saw.
"""
