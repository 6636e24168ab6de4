"""What ends by itself: approvals that nobody decided, and rows that nobody needs any more."""
