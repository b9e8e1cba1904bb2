"""What nodes say to each other, and its bytes. Knows nothing of sockets."""
