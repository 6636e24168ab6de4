"""An identity provider that answers by SAML as real ones do, and in every way in which a hostile one could.

Answers are built with lxml and signed by xmlsec (libxml2), which share no code with our reader. `Answer` has a knob for
each value; its `tree` can be changed before it is signed and after. `sign_by_hand` makes the signatures that xmlsec
does not want to make.
"""

import copy
import hashlib
from base64 import b64encode
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import xmlsec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.x509.oid import NameOID
from lxml import etree

SAML = "urn:oasis:names:tc:SAML:2.0:assertion"
SAMLP = "urn:oasis:names:tc:SAML:2.0:protocol"
DS = "http://www.w3.org/2000/09/xmldsig#"
EXCLUSIVE = "http://www.w3.org/2001/10/xml-exc-c14n#"
MORE = "http://www.w3.org/2001/04/xmldsig-more#"
ENC = "http://www.w3.org/2001/04/xmlenc#"
EMAIL = "urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress"
PERSISTENT = "urn:oasis:names:tc:SAML:2.0:nameid-format:persistent"
TRANSIENT = "urn:oasis:names:tc:SAML:2.0:nameid-format:transient"
SUCCESS = "urn:oasis:names:tc:SAML:2.0:status:Success"
BEARER = "urn:oasis:names:tc:SAML:2.0:cm:bearer"
_CURVES = {"p256": ec.SECP256R1, "p384": ec.SECP384R1, "p521": ec.SECP521R1, "p192": ec.SECP192R1, "k1": ec.SECP256K1}
_HASHES: dict[str, Any] = {"1": hashes.SHA1, "256": hashes.SHA256, "384": hashes.SHA384, "512": hashes.SHA512}
DIGESTS = {"1": DS + "sha1", "256": ENC + "sha256", "384": MORE + "sha384", "512": ENC + "sha512"}
type Tree = Any


class Key:
    """A signing key of an identity provider and the certificate to pin: `rsa`, `rsa1024`, `rsa-e3`, `p256`..."""

    def __init__(self, kind: str, ends: datetime) -> None:
        self.kind = kind
        if kind.startswith("rsa"):
            exponent = 3 if kind == "rsa-e3" else 65537
            self.private: Any = rsa.generate_private_key(exponent, 1024 if kind == "rsa1024" else 2048)
        else:
            self.private = ec.generate_private_key(_CURVES[kind]())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"idp {kind}")])
        made = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(self.private.public_key())
        made = made.serial_number(1).not_valid_before(ends - timedelta(days=3650)).not_valid_after(ends)
        self.der = made.sign(self.private, hashes.SHA256()).public_bytes(serialization.Encoding.DER)
        self.certificate = x509.load_der_x509_certificate(self.der).public_bytes(serialization.Encoding.PEM).decode()

    @property
    def pem(self) -> bytes:
        """The private key."""
        form = serialization.PrivateFormat.PKCS8
        return self.private.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())

    def raw_signature(self, content: bytes, size: str = "256") -> bytes:
        """A signature as XML has it: PKCS #1, or r and s at their full length."""
        if isinstance(self.private, rsa.RSAPrivateKey):
            return self.private.sign(content, padding.PKCS1v15(), _HASHES[size]())
        r, s = decode_dss_signature(self.private.sign(content, ec.ECDSA(_HASHES[size]())))
        length = (self.private.curve.key_size + 7) // 8
        return r.to_bytes(length, "big") + s.to_bytes(length, "big")


_MADE: dict[tuple[str, str, datetime], Key] = {}


def key(kind: str = "rsa", name: str = "", ends: datetime = datetime(2040, 1, 1, tzinfo=UTC)) -> Key:
    """One key for each kind, name and end; making RSA keys is slow."""
    wanted = (kind, name, ends)
    if wanted not in _MADE:
        _MADE[wanted] = Key(kind, ends)
    return _MADE[wanted]


def instant(moment: datetime) -> str:
    """A time as SAML writes it."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03}Z"


@dataclass(frozen=True, kw_only=True)
class Answer:
    """An identity provider's answer; every field can be another. None leaves the thing out."""

    now: datetime
    idp_entity_id: str = "https://idp.example/entity"
    sp_entity_id: str = "https://custody.example/auth/saml/acme/metadata"
    acs_url: str = "https://custody.example/auth/saml/acme/acs"
    request_id: str | None = "_" + "r" * 43
    response_id: str = "_response1"
    assertion_id: str = "_assertion1"
    issuer: str | None = None
    destination: str | None = ""
    outer_request_id: str | None = ""
    name_id: str = "ann@example.com"
    name_id_format: str | None = EMAIL
    attributes: dict[str, list[str]] = field(default_factory=lambda: {"groups": ["staff", "admins"]})
    lifetime: timedelta = timedelta(minutes=5)
    session: timedelta | None = timedelta(hours=8)
    status: str = SUCCESS
    inner_status: str | None = None
    authentication: bool = True

    def but(self, **changes: Any) -> "Answer":
        """The same with other values."""
        return replace(self, **changes)

    def tree(self) -> Tree:
        """The unsigned Response."""
        outer = self.request_id if self.outer_request_id == "" else self.outer_request_id
        response = etree.Element(f"{{{SAMLP}}}Response", nsmap={"samlp": SAMLP, "saml": SAML})
        there = {"ID": self.response_id, "Version": "2.0", "IssueInstant": instant(self.now), "InResponseTo": outer}
        _set(response, there | {"Destination": self.acs_url if self.destination == "" else self.destination})
        add(response, SAML, "Issuer", self.issuer or self.idp_entity_id)
        code = add(add(response, SAMLP, "Status"), SAMLP, "StatusCode", Value=self.status)
        if self.inner_status:
            add(code, SAMLP, "StatusCode", Value=self.inner_status)
        if self.status == SUCCESS:
            response.append(self.assertion())
        return response

    def assertion(self) -> Tree:
        """The Assertion alone."""
        end, begin = instant(self.now + self.lifetime), instant(self.now - timedelta(seconds=5))
        made = etree.Element(f"{{{SAML}}}Assertion", nsmap={"saml": SAML})
        _set(made, {"ID": self.assertion_id, "Version": "2.0", "IssueInstant": instant(self.now)})
        add(made, SAML, "Issuer", self.issuer or self.idp_entity_id)
        subject = add(made, SAML, "Subject")
        add(subject, SAML, "NameID", self.name_id, Format=self.name_id_format)
        confirmation = add(subject, SAML, "SubjectConfirmation", Method=BEARER)
        about = {"NotOnOrAfter": end, "Recipient": self.acs_url, "InResponseTo": self.request_id}
        add(confirmation, SAML, "SubjectConfirmationData", **about)
        conditions = add(made, SAML, "Conditions", NotBefore=begin, NotOnOrAfter=end)
        add(add(conditions, SAML, "AudienceRestriction"), SAML, "Audience", self.sp_entity_id)
        if self.authentication:
            ends = self.session and instant(self.now + self.session)
            said = add(made, SAML, "AuthnStatement", AuthnInstant=begin, SessionIndex="_s1", SessionNotOnOrAfter=ends)
            context = "urn:oasis:names:tc:SAML:2.0:ac:classes:PasswordProtectedTransport"
            add(add(said, SAML, "AuthnContext"), SAML, "AuthnContextClassRef", context)
        if self.attributes:
            statement = add(made, SAML, "AttributeStatement")
            for name, values in self.attributes.items():
                one = add(statement, SAML, "Attribute", Name=name)
                for value in values:
                    add(one, SAML, "AttributeValue", value)
        return made

    def sign(self, by: Key, what: str = "assertion") -> bytes:
        """The bytes of the answer with the `assertion`, the `response` or `both` signed."""
        return sign_tree(self.tree(), by, what)


def sign_tree(tree: Tree, by: Key, what: str = "assertion", prefixes: str | None = None) -> bytes:
    """A tree's bytes, signed by xmlsec."""
    tree = copy.deepcopy(tree)
    if what in ("assertion", "both"):
        sign(the(tree, "Assertion"), by, prefixes=prefixes)
    if what in ("response", "both"):
        sign(tree, by, prefixes=prefixes)
    return to_bytes(tree)


def sign(parent: Tree, by: Key, size: str = "256", prefixes: str | None = None) -> Tree:
    """Put a signature behind the Issuer of a Response or Assertion."""
    algorithm = getattr(xmlsec.Transform, f"{'RSA' if by.kind.startswith('rsa') else 'ECDSA'}_SHA{size}")
    signature = xmlsec.template.create(parent, xmlsec.Transform.EXCL_C14N, algorithm, ns="ds")
    parent.insert(1, signature)
    reference = xmlsec.template.add_reference(
        signature, getattr(xmlsec.Transform, f"SHA{size}"), uri=f"#{parent.get('ID')}"
    )
    xmlsec.template.add_transform(reference, xmlsec.Transform.ENVELOPED)
    exclusive = xmlsec.template.add_transform(reference, xmlsec.Transform.EXCL_C14N)
    if prefixes is not None:
        etree.SubElement(exclusive, f"{{{EXCLUSIVE}}}InclusiveNamespaces", nsmap={"ec": EXCLUSIVE}, PrefixList=prefixes)
    info = xmlsec.template.ensure_key_info(signature)
    data = etree.SubElement(info, f"{{{DS}}}X509Data")
    etree.SubElement(data, f"{{{DS}}}X509Certificate").text = b64encode(by.der).decode()
    context = xmlsec.SignatureContext()
    context.key = xmlsec.Key.from_memory(by.pem, xmlsec.KeyFormat.PEM)
    context.register_id(parent, "ID")
    context.sign(signature)
    return signature


def holds(content: bytes, by: Key, local: str = "Assertion") -> bool:
    """The second opinion: whether xmlsec finds the signature in this element good."""
    tree = etree.fromstring(content)
    parent = the(tree, local)
    context = xmlsec.SignatureContext()
    context.key = xmlsec.Key.from_memory(by.certificate.encode(), xmlsec.KeyFormat.CERT_PEM)
    context.register_id(parent, "ID")
    try:
        context.verify(parent.find(f"{{{DS}}}Signature"))
    except xmlsec.Error:
        return False
    return True


def sign_by_hand(parent: Tree, by: Key, change: Any = None, size: str = "256", value: Any = None) -> Tree:
    """The same signature made step by step, with `change` of its template before SignedInfo is signed.

    `value` makes SignatureValue of the canonical bytes of SignedInfo, in place of the key.
    """
    uri = f"{MORE}{'rsa' if by.kind.startswith('rsa') else 'ecdsa'}-sha{size}"
    signature = etree.Element(f"{{{DS}}}Signature", nsmap={"ds": DS})
    info = add(signature, DS, "SignedInfo")
    add(info, DS, "CanonicalizationMethod", Algorithm=EXCLUSIVE)
    add(info, DS, "SignatureMethod", Algorithm=DS + "rsa-sha1" if size == "1" else uri)
    reference = add(info, DS, "Reference", URI=f"#{parent.get('ID')}")
    transforms = add(reference, DS, "Transforms")
    add(transforms, DS, "Transform", Algorithm=DS + "enveloped-signature")
    add(transforms, DS, "Transform", Algorithm=EXCLUSIVE)
    add(reference, DS, "DigestMethod", Algorithm=DIGESTS[size])
    digest = hashlib.new(f"sha{size}", canonical(parent)).digest()
    add(reference, DS, "DigestValue", b64encode(digest).decode())
    add(signature, DS, "SignatureValue")
    if change is not None:
        change(signature)
    parent.insert(1, signature)
    content = canonical(info)
    made = value(content) if value else by.raw_signature(content, size)
    the(signature, "SignatureValue").text = b64encode(made).decode()
    return signature


def canonical(element: Tree, prefixes: list[str] | None = None) -> bytes:
    """Exclusive canonical XML by libxml2."""
    alone = etree.tostring(element, method="c14n", exclusive=True, inclusive_ns_prefixes=prefixes, with_tail=False)
    return bytes(alone)


def the(tree: Tree, local: str) -> Tree:
    """The first element of this name, the tree itself included."""
    return next(tree.iter(f"{{*}}{local}"))


def to_bytes(tree: Tree) -> bytes:
    """A tree as it goes over the wire."""
    return bytes(etree.tostring(tree))


def form_value(content: bytes) -> str:
    """The value of the form's field SAMLResponse."""
    return b64encode(content).decode()


def add(parent: Tree, namespace: str, local: str, text: str | None = None, **attributes: str | None) -> Tree:
    made = etree.SubElement(parent, f"{{{namespace}}}{local}")
    made.text = text
    _set(made, attributes)
    return made


def _set(element: Tree, attributes: dict[str, str | None]) -> None:
    for name, value in attributes.items():
        if value is not None:
            element.set(name, value)
