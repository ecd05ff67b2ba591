"""What Azure Anomaly Detector did for single series until October 2026, for clients that stay as they are."""

from tocsin_monitor.azure.detection import detect_change_points, detect_entire, detect_last
from tocsin_monitor.azure.requests import AzureError, ChangePointRequest, DetectRequest, read_request

__all__ = [
    "AzureError",
    "ChangePointRequest",
    "DetectRequest",
    "detect_change_points",
    "detect_entire",
    "detect_last",
    "read_request",
]
