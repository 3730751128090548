"""The event loop of the simulator: numba over plain arrays, no Python object inside.

layout    the one array that holds a simulation, word by word
memory    laying it out, and letting it grow
records   from a port to its queues and ingresses
pointer   from an array to a bare pointer
jit       how all of this is compiled and cached
heap      the event queue
egress    serving the queues of a port: strict, ETS, pause, ECN, the wire
switch    what a switch does with a packet that has arrived
pause     PFC frames: sending, obeying, refreshing, expiring
watchdog  a pause that does not end, and what a switch does about it
intake    NICs that empty their receive buffer slowly, or storm
link      links that go down and come up
sender    queue pairs at the sending NIC: pacing, go-back-N
dcqcn     rate control at the sending NIC
receiver  what the receiving NIC does: order, ACK, NAK, CNP, messages
answer    what it sends back
tcp       TCP: what may leave; tcp_ack, what an ACK says; tcp_receiver; window
loop      one slice of simulated time
"""
