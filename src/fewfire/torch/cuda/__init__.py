"""Exact sparse blocks on an NVIDIA GPU: one kernel per call, compiled at first use for the block's shape."""

from fewfire.torch.cuda._device_block import CaptureError as CaptureError
from fewfire.torch.cuda._device_block import DeviceBlock as DeviceBlock
