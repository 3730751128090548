"""How a model's training scales on a fabric: predicted, never measured."""
