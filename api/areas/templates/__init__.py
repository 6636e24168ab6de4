"""Policy templates and presets of credential routes: what a tenant begins with, applied."""
