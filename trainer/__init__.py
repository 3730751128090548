"""TensorFlow training with gradients by ring allreduce; starts only behind the gate."""
