"""What figures were: bounded rings of samples of the node, its virtual hosts, and objects as far as there is room."""
