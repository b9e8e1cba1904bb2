"""Trained GNN to exported model: TorchScript and ONNX that run without DGL, weights and a model card.

Knows nothing of how the model was trained.
"""
