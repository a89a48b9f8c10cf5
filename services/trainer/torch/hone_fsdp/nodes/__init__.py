"""The processes of a group on a node, and the probes of the program that starts them."""
