"""The approvals queue as the console holds it. Pure. (H1)"""
