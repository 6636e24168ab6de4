"""Payments that servers demand by HTTP 402 as x402 has it, read strictly; pure."""
