"""What emulated command lines share: a grammar, output filters, a terminal, a store.

Nothing here knows a vendor; the texts of refusals are the grammar's own and are
translated by each emulator.
"""
