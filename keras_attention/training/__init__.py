"""From a configuration to trained weights in a folder of their own."""
