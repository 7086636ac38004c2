"""Exact sparse blocks on an NVIDIA GPU: one kernel per call, compiled at first use for the block's shape."""

from fewfire.torch.cuda._device_block import LARGEST_BATCH, CaptureError, DeviceBlock

__all__ = ["LARGEST_BATCH", "CaptureError", "DeviceBlock"]
