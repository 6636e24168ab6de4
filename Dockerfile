# One image, a target for each process: `docker build --target signer .`; compose.yaml builds them all.
# The image holds no secret and no compiler; keys, addresses and sockets come by volumes.

FROM python:3.13-slim AS packages
WORKDIR /srv/custody
COPY requirements.runtime.lock .python-version ./
COPY scripts/set-up scripts/
# The command that sets up a checkout, with the lock that leaves out what only development needs. Wheels only.
RUN PIP_ONLY_BINARY=:all: PROJECT_LOCK=requirements.runtime.lock PROJECT_PYTHON=/usr/local/bin/python3 scripts/set-up --quiet \
 && .venv/bin/python -m pip uninstall --quiet --yes pip \
 && .venv/bin/python -m compileall -q -o 0 -o 1 .venv/lib

FROM python:3.13-slim AS runtime
RUN python3 -m pip uninstall --quiet --yes --root-user-action ignore pip \
 && mkdir -p /srv/custody /var/lib/custody/db /var/lib/custody/signer /var/lib/custody/proxy /run/custody \
 && chmod 0711 /var/lib/custody /var/lib/custody/db \
 && chown 64711:64711 /var/lib/custody/signer /run/custody && chmod 0700 /var/lib/custody/signer && chmod 0711 /run/custody \
 && chown 64714:64714 /var/lib/custody/proxy && chmod 0700 /var/lib/custody/proxy
WORKDIR /srv/custody
COPY --from=packages /srv/custody/.venv .venv
COPY custody custody
COPY signer signer
COPY api api
COPY scheduler scheduler
COPY proxy_addon proxy_addon
RUN .venv/bin/python -m compileall -q -o 0 -o 1 custody signer api scheduler proxy_addon
# Nothing may be written beside the sources. HOME is where libraries look for settings of a user, who has none.
ENV PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 HOME=/nonexistent
ENV SERVICE_HOME=/var/lib/custody SERVICE_SIGN_SOCKET=/run/custody/sign.sock SERVICE_REVEAL_SOCKET=/run/custody/reveal.sock
STOPSIGNAL SIGTERM
ENTRYPOINT ["/srv/custody/.venv/bin/custody"]

# It makes the roles' address files, each for its process' uid, so it begins as root (compose.yaml takes most of that).
FROM runtime AS migrate
USER 0:0
HEALTHCHECK NONE
CMD ["migrate"]

FROM runtime AS signer
USER 64711:64711
HEALTHCHECK --interval=5s --timeout=5s --start-period=30s --retries=3 CMD ["/srv/custody/.venv/bin/python", "-P", "-m", "custody.cli.healthy", "signer"]
CMD ["signer"]

FROM runtime AS scheduler
USER 64713:64713
HEALTHCHECK --interval=5s --timeout=5s --start-period=30s --retries=3 CMD ["/srv/custody/.venv/bin/python", "-P", "-m", "custody.cli.healthy", "scheduler"]
CMD ["scheduler"]

FROM runtime AS proxy
USER 64714:64714
ENV SERVICE_PROXY_HOST=0.0.0.0 SERVICE_PROXY_CA_FILE=/var/lib/custody/proxy/proxy-ca.pem SERVICE_PROXY_CA_KEY_FILE=/var/lib/custody/proxy/proxy-ca.key
EXPOSE 8080
HEALTHCHECK --interval=5s --timeout=5s --start-period=30s --retries=3 CMD ["/srv/custody/.venv/bin/python", "-P", "-m", "custody.cli.healthy", "proxy"]
CMD ["proxy"]

FROM runtime AS api
USER 64712:64712
ENV SERVICE_API_HOST=0.0.0.0
EXPOSE 3200
HEALTHCHECK --interval=5s --timeout=5s --start-period=30s --retries=3 CMD ["/srv/custody/.venv/bin/python", "-P", "-m", "custody.cli.healthy", "api"]
CMD ["api"]
