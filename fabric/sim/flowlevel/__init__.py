"""Flow-level simulation: steady rates of long flows, without packets.

Two regimes, each a fixed point of prices over the links of every flow's path:
``marking`` where DCQCN holds the senders back, ``backpressure`` where PFC alone does.
"""
