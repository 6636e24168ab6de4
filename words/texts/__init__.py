"""Text, amounts and times as a person reads them. Pure."""
