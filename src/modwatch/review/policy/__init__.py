"""The moderation policy: codes, reasons, and DSA categories."""
