"""Acts on the service itself: its state, its documents, and commands of no area."""

from tests.acts.act import ANYBODY, EVERY, PUBLIC, Act

ACTS = (
    Act("GET /ready", PUBLIC),
    Act("GET /health", PUBLIC),
    Act("GET /openapi.json", PUBLIC),
    Act("GET /openapi-plain.json", PUBLIC),
    Act("GET /.well-known/jwks.json", PUBLIC),
    Act("GET /device", PUBLIC),
    Act("GET /docs", PUBLIC),
    Act("GET /llms.txt", PUBLIC),
    Act("GET /chains", PUBLIC),
    Act("GET /invitation", PUBLIC),
    Act("GET /approve", PUBLIC),
    Act("GET /me", EVERY, ANYBODY),
)
