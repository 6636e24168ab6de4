"""python-gitlab."""

import os

import gitlab
from steps import BASE, FILE, KEY, UPLOADED, of_file, run

client = gitlab.Gitlab(BASE, **{os.environ["PLACE"]: KEY})
project = client.projects.get("g/p", lazy=True)


def download() -> object:
    with FILE.open("wb") as file:
        project.generic_packages.download("n", "1", "f", streamed=True, action=file.write)
    return of_file()


def upload() -> object:
    FILE.write_bytes(UPLOADED)
    size, digest = project.generic_packages.upload("n", "1", "up", FILE).message.split()
    return [int(size), digest]


run(
    {
        "call": lambda: client.version()[0],
        "pages": lambda: [str(one.id) for one in client.projects.list(get_all=True)],
        "folder": lambda: project.branches.get("a/b").name,
        "download": download,
        "upload": upload,
    }
)
