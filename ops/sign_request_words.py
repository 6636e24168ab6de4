"""The words of `custody sign-request`, without what it imports: other commands pay for none of it."""

from pathlib import Path
from typing import Any

USAGE = """custody sign-request METHOD URL --tenant ID --signer ID --key FILE [--body FILE]
       custody sign-request METHOD URL --tenant ID --signer ID --secret-file FILE [--body FILE]
       custody sign-request METHOD URL --tenant ID --quorum ID --signer ID=FILE --signer ID=FILE [--body FILE]
       custody sign-request new-key FILE"""
EXAMPLE = """The body is signed byte for byte: send the same file. An example:

  custody sign-request POST http://127.0.0.1:3200/vault/shop/sign --tenant acme --body order.json \\
      --signer 7c7ab0a0-5d6d-4c7e-9a53-6d3f2f3f0c11 --key signer.pem --output curl

docs/signers.md tells what signers and quorums are for."""


def declare(commands: Any, formatter: Any) -> None:
    """`sign-request`, in its two forms."""
    about = "sign a request as a signer or a key quorum, and print the headers to send; or make a key"
    top = commands.add_parser(
        "sign-request", help=about, description=about, usage=USAGE, epilog=EXAMPLE, formatter_class=formatter
    )
    top.add_argument("method", metavar="METHOD", help="POST, PUT, PATCH or DELETE; or `new-key`")
    top.add_argument("target", metavar="URL", help="the URL, or the path with its query; the file of a new key")
    top.add_argument("--tenant", metavar="ID", help="the tenant of the agent: a line of the text that is signed")
    signer = "the signer's id; ID=FILE names its private key or its secret, and may be repeated"
    top.add_argument("--signer", action="append", default=[], metavar="ID[=FILE]", help=signer)
    file = top.add_mutually_exclusive_group()
    file.add_argument("--key", type=Path, metavar="FILE", help="the P-256 private key of the signer, PEM, mode 0600")
    file.add_argument("--secret-file", type=Path, metavar="FILE", help="the credential of an HMAC signer, mode 0600")
    top.add_argument("--quorum", metavar="ID", help="sign for this key quorum, with each --signer")
    top.add_argument("--body", metavar="FILE", help="the body; - for standard input; without it there is none")
    header = "a header of the request; only the idempotency key and the two times are read, nothing else is signed"
    top.add_argument("-H", "--header", action="append", default=[], metavar="'NAME: VALUE'", help=header)
    top.add_argument("--idempotency-key", metavar="KEY", help="8 to 255 characters; without it one is made")
    top.add_argument("--timestamp", metavar="TIME", help="Unix seconds, or ISO 8601 with a zone; without it: now")
    top.add_argument("--expires-at", metavar="TIME", help="likewise, at most 5 minutes ahead; without it: none")
    output = "lines of headers (default), a curl command, or a JSON object"
    top.add_argument("--output", choices=("headers", "curl", "json"), default="headers", help=output)
