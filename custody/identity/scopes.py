"""The scopes that a platform key may be limited to."""

TENANT_READ = "platform:tenant:read"
TENANT_WRITE = "platform:tenant:write"
TENANT_USER_READ = "platform:tenant-user:read"
USER_READ = "platform:user:read"
USER_WRITE = "platform:user:write"
GAS_SPEND_READ = "platform:gas-spend:read"
