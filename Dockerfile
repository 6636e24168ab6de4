# An image for each process, with the packages and the sources of that process alone: `docker build --target signer .`;
# compose.yaml builds them all. An image holds no secret and no compiler; keys, addresses and sockets come by volumes.

FROM python:3.13-slim AS packages
WORKDIR /srv/custody
COPY .python-version ./
COPY scripts/set-up scripts/image-packages scripts/image-wheel scripts/
# The command that sets up a checkout, with the lock of one process.
ENV PROJECT_PYTHON=/usr/local/bin/python3

FROM packages AS migrate-packages
COPY locks/migrate.lock locks/
RUN scripts/image-packages migrate

# embit is published as source alone, and building runs what is in it: of this stage the wheel is taken and nothing else.
FROM packages AS embit-wheel
COPY locks/build.lock locks/signer.lock locks/
RUN scripts/image-wheel signer embit

FROM packages AS signer-packages
COPY --from=embit-wheel /srv/custody/wheels/*.whl wheels/
COPY locks/signer.lock locks/
RUN scripts/image-packages signer

FROM packages AS identity-packages
COPY locks/identity.lock locks/
RUN scripts/image-packages identity

FROM packages AS scheduler-packages
COPY locks/scheduler.lock locks/
RUN scripts/image-packages scheduler

FROM packages AS proxy-packages
COPY locks/proxy.lock locks/
RUN scripts/image-packages proxy

FROM packages AS api-packages
COPY locks/api.lock locks/
RUN scripts/image-packages api

# Of what opens a sealed master key file one kind's: `--build-arg KIND=aws`, azure, gcp or pkcs11. What people need is
# enough for the kinds that are not named here.
FROM packages AS opener-packages
ARG KIND=people
COPY locks/opener-aws.lock locks/opener-azure.lock locks/opener-gcp.lock locks/opener-people.lock locks/opener-pkcs11.lock locks/
RUN scripts/image-packages opener-$KIND

FROM python:3.13-slim AS runtime
RUN python3 -m pip uninstall --quiet --yes --root-user-action ignore pip \
 && mkdir -p /srv/custody /var/lib/custody/db /var/lib/custody/signer /var/lib/custody/identity-key /var/lib/custody/proxy /run/custody \
    /run/custody-identity \
 && chmod 0711 /var/lib/custody /var/lib/custody/db \
 && chown 64711:64711 /var/lib/custody/signer /run/custody && chmod 0700 /var/lib/custody/signer && chmod 0711 /run/custody \
 && chown 64711:64715 /var/lib/custody/identity-key && chmod 2750 /var/lib/custody/identity-key \
 && chown 64715:64715 /run/custody-identity && chmod 0711 /run/custody-identity \
 && chown 64714:64714 /var/lib/custody/proxy && chmod 0700 /var/lib/custody/proxy
WORKDIR /srv/custody
COPY custody custody
# `docker build --build-arg COMMIT="$(git rev-parse HEAD)"`: what `custody --version` and `GET /health` say.
ARG COMMIT=unknown
RUN printf '%s\n' "$COMMIT" > custody/commit
COPY ops ops
RUN python3 -m compileall -q -o 0 -o 1 custody ops
# Nothing may be written beside the sources. HOME is where libraries look for settings of a user, who has none.
ENV PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 HOME=/nonexistent
ENV SERVICE_HOME=/var/lib/custody SERVICE_SIGN_SOCKET=/run/custody/sign.sock SERVICE_REVEAL_SOCKET=/run/custody/reveal.sock
ENV SERVICE_IDENTITY_SOCKET=/run/custody-identity/identity.sock
STOPSIGNAL SIGTERM
ENTRYPOINT ["/srv/custody/.venv/bin/custody"]

# It makes the roles' address files, each for its process' uid, so it begins as root (compose.yaml takes most of that).
FROM runtime AS migrate
COPY --from=migrate-packages /srv/custody/.venv .venv
USER 0:0
HEALTHCHECK NONE
CMD ["migrate"]

FROM runtime AS signer
COPY --from=signer-packages /srv/custody/.venv .venv
COPY signer signer
# Beside it, for `custody restore --verify`: the signer derives the key, identity's own code checks its rows with it.
COPY identity identity
RUN .venv/bin/python -m compileall -q -o 0 -o 1 signer identity
USER 64711:64711
HEALTHCHECK --interval=5s --timeout=5s --start-period=30s --retries=3 CMD ["/srv/custody/.venv/bin/python", "-P", "-m", "ops.healthy", "signer"]
CMD ["signer"]

FROM runtime AS identity
COPY --from=identity-packages /srv/custody/.venv .venv
COPY identity identity
RUN .venv/bin/python -m compileall -q -o 0 -o 1 identity
USER 64715:64715
HEALTHCHECK --interval=5s --timeout=5s --start-period=30s --retries=3 CMD ["/srv/custody/.venv/bin/python", "-P", "-m", "ops.healthy", "identity"]
CMD ["identity"]

FROM runtime AS scheduler
COPY --from=scheduler-packages /srv/custody/.venv .venv
COPY scheduler scheduler
RUN .venv/bin/python -m compileall -q -o 0 -o 1 scheduler
USER 64713:64713
HEALTHCHECK --interval=5s --timeout=5s --start-period=30s --retries=3 CMD ["/srv/custody/.venv/bin/python", "-P", "-m", "ops.healthy", "scheduler"]
CMD ["scheduler"]

FROM runtime AS proxy
COPY --from=proxy-packages /srv/custody/.venv .venv
COPY proxy_addon proxy_addon
RUN .venv/bin/python -m compileall -q -o 0 -o 1 proxy_addon
USER 64714:64714
ENV SERVICE_PROXY_HOST=0.0.0.0 SERVICE_PROXY_CA_FILE=/var/lib/custody/proxy/proxy-ca.pem SERVICE_PROXY_CA_KEY_FILE=/var/lib/custody/proxy/proxy-ca.key
EXPOSE 8080
HEALTHCHECK --interval=5s --timeout=5s --start-period=30s --retries=3 CMD ["/srv/custody/.venv/bin/python", "-P", "-m", "ops.healthy", "proxy"]
CMD ["proxy"]

FROM runtime AS api
COPY --from=api-packages /srv/custody/.venv .venv
COPY api api
COPY words words
RUN .venv/bin/python -m compileall -q -o 0 -o 1 api words
USER 64712:64712
ENV SERVICE_API_HOST=0.0.0.0
EXPOSE 3200
HEALTHCHECK --interval=5s --timeout=5s --start-period=30s --retries=3 CMD ["/srv/custody/.venv/bin/python", "-P", "-m", "ops.healthy", "api"]
CMD ["api"]

# Beside the signer, under its uid and in a container of its own (compose.opener.yaml): no volume of it has the sealed keys.
FROM runtime AS opener
COPY --from=opener-packages /srv/custody/.venv .venv
COPY openers openers
RUN .venv/bin/python -m compileall -q -o 0 -o 1 openers
USER 64711:64711
HEALTHCHECK --interval=5s --timeout=5s --start-period=30s --retries=3 CMD ["/srv/custody/.venv/bin/python", "-P", "-m", "openers.waiting", "check"]
ENTRYPOINT ["/srv/custody/.venv/bin/python", "-P", "-m", "openers.waiting"]
CMD []
