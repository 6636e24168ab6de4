"""PyGithub."""

import base64

import github
from steps import BASE, KEY, UPLOADED, run, size_and_digest

client = github.Github(base_url=BASE, auth=github.Auth.Token(KEY), retry=None)
repo = client.get_repo("o/r", lazy=True)


def upload() -> object:
    size, digest = repo.create_file("up.bin", "m", UPLOADED)["content"].name.split()
    return [int(size), digest]


def busy() -> object:
    try:
        repo.get_label("busy").color  # noqa: B018 - it asks when it is looked at
    except github.GithubException as refused:
        return [refused.status, refused.headers["retry-after"]]


run(
    {
        "call": lambda: client.get_user().name,
        "pages": lambda: [str(issue.id) for issue in repo.get_issues()],
        "folder": lambda: repo.get_commit("a/b").raw_data["name"],
        "download": lambda: size_and_digest(base64.b64decode(repo.get_git_blob("sha-1").content)),
        "upload": upload,
        "busy": busy,
    }
)
