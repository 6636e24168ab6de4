"""What was asked, decided and signed."""
