"""A provider's code becomes an ID token, or the id of a profile. Whatever goes wrong there is a word for identity.

The provider is somebody else's server: its answer is bounded, in time and bytes, and nothing of it is shown or logged.
"""

import base64
from urllib.parse import quote_plus, urlencode

import msgspec

from api.areas.sign_on import client_secrets
from custody.identity.strict_json import NotStrict, read_object
from custody.kit.errors import CustodyError
from custody.kit.outside import Fetched, NoAnswer
from custody.ports import Ports
from custody.protocol.identity.sign_on import IDTOKEN_MOST, USERINFO_MOST, Opened, Problem, SignOnKind

MOST_BYTES = 64 * 1024
# Of requests that are made for the deployment itself.
_DEPLOYMENT = "platform"


class Said(msgspec.Struct, frozen=True):
    """The provider's statement on the person, or why it made none."""

    id_token: str | None = None
    profile: str | None = None
    userinfo: str | None = None
    problem: Problem | None = None

    def __repr__(self) -> str:
        return f"Said({self.problem})"


class _Tokens(msgspec.Struct, frozen=True):
    """Of RFC 6749 5.1 what is used."""

    token_type: str = "Bearer"  # noqa: S105 - a type
    access_token: str = ""
    id_token: str | None = None

    def __repr__(self) -> str:
        return "_Tokens()"


class _Id(msgspec.Struct, frozen=True):
    id: str


class _Profile(msgspec.Struct, frozen=True):
    """Of X's answer what is used. It answers 200 with `errors` too."""

    data: _Id
    errors: list[msgspec.Raw] = []

    def __repr__(self) -> str:
        return "_Profile()"


async def ask(ports: Ports, kind: SignOnKind, name: str, tenant: str | None, opened: Opened, code: str) -> Said:
    """Exchange the code, once."""
    try:
        secret = await _secret_of(ports, kind, name, tenant, opened)
    except CustodyError:
        # The variable's name may be meant by another tenant by now, so nobody gets it.
        return Said(problem="token_endpoint_refused")
    asked_for = tenant or _DEPLOYMENT
    try:
        answer = await _post(ports, opened, code, secret, asked_for)
    except NoAnswer:
        return Said(problem="token_endpoint_failed")
    if answer.status in (400, 401, 403):
        return Said(problem="token_endpoint_refused")
    try:
        tokens = _decode(answer, _Tokens)
    except msgspec.MsgspecError:
        return Said(problem="token_endpoint_failed")
    if tokens.token_type.lower() != "bearer":
        return Said(problem="token_endpoint_failed")
    if opened.profile_url is not None:
        return await _profile(ports, opened.profile_url, tokens.access_token, asked_for)
    if tokens.id_token is not None and len(tokens.id_token) > IDTOKEN_MOST:
        return Said(problem="token_endpoint_failed")
    if opened.userinfo_url is not None and tokens.id_token is not None and _leaves_open(tokens.id_token):
        return await _userinfo(ports, opened.userinfo_url, tokens, asked_for)
    return Said(id_token=tokens.id_token)


async def _secret_of(ports: Ports, kind: SignOnKind, name: str, tenant: str | None, opened: Opened) -> str | None:
    if kind == "oauth":
        return next(secret for known, secret in ports.oauth_secrets.items() if known == name)
    if opened.secret_env is None or tenant is None:
        return None
    return await client_secrets.secret_of(ports, tenant, opened.secret_env)


async def _post(ports: Ports, opened: Opened, code: str, secret: str | None, asked_for: str) -> Fetched:
    form = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": opened.callback,
        "code_verifier": opened.verifier,
    }
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
    if secret is not None and opened.basic:
        # RFC 6749 2.3.1: each part is encoded as a form is.
        pair = f"{quote_plus(opened.client_id)}:{quote_plus(secret)}".encode()
        headers["Authorization"] = f"Basic {base64.b64encode(pair).decode()}"
    else:
        form["client_id"] = opened.client_id
        form |= {"client_secret": secret} if secret is not None else {}
    body = urlencode(form).encode()
    return await ports.fetcher.post(opened.token_url, body, tenant=asked_for, most_bytes=MOST_BYTES, headers=headers)


def _leaves_open(id_token: str) -> bool:
    """Say whether an ID token is silent on whether the address is verified. It is judged elsewhere; this asks only."""
    payload = f"{id_token}..".split(".")[1]
    try:
        return "email_verified" not in read_object(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    except (ValueError, NotStrict):
        return False


async def _userinfo(ports: Ports, url: str, tokens: _Tokens, asked_for: str) -> Said:
    """The answer of the userinfo endpoint (OpenID Connect Core 1.0, 5.3) as it is, asked for once."""
    try:
        answer = await _get(ports, url, tokens.access_token, asked_for, USERINFO_MOST)
        said = answer.body.decode() if answer.status == 200 else None
    except (NoAnswer, UnicodeDecodeError):
        said = None
    return Said(problem="userinfo_failed") if said is None else Said(id_token=tokens.id_token, userinfo=said)


async def _get(ports: Ports, url: str, access_token: str, asked_for: str, most_bytes: int) -> Fetched:
    # A token with a line end would make another request of it.
    if not access_token or not access_token.isascii() or not access_token.isprintable():
        raise NoAnswer("address_blocked")
    headers = {"Authorization": f"Bearer {access_token}", "Accept": "application/json"}
    return await ports.fetcher.get(url, tenant=asked_for, most_bytes=most_bytes, headers=headers)


async def _profile(ports: Ports, url: str, access_token: str, asked_for: str) -> Said:
    try:
        profile = _decode(await _get(ports, url, access_token, asked_for, MOST_BYTES), _Profile)
    except (NoAnswer, msgspec.MsgspecError):
        return Said(problem="profile_failed")
    if profile.errors or len(profile.data.id) > 32:
        return Said(problem="profile_failed")
    return Said(profile=profile.data.id)


def _decode[T](answer: Fetched, kind: type[T]) -> T:
    """The JSON of a success; MsgspecError for anything else."""
    if answer.status != 200:
        raise msgspec.DecodeError("not a success")
    try:
        return msgspec.json.decode(answer.body, type=kind)
    except (UnicodeDecodeError, RecursionError):
        raise msgspec.DecodeError("not JSON") from None
