"""The ends without a caller: approvals that nobody decided, and rows that nobody needs any more."""
