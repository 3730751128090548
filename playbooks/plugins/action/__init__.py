"""Action plugins: they run on the controller, one device each."""
