"""How an agent turns the outputs of its networks into actions, exploring or not."""
