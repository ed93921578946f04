"""Networks as passes over array operations, for the frameworks that Keras is not used on."""
