"""The public address is written where it belongs, once however often, and a wrong one is refused."""

import shutil
import tomllib

import address
import pytest

FILES = ("pyproject.toml", "CITATION.cff", "README.md")


@pytest.fixture
def folder(tmp_path):
    for name in FILES:
        shutil.copy(address.ROOT / name, tmp_path)
    return tmp_path


def test_links_citation_and_pictures(folder):
    address.main(["https://forge.example/few/fire"], folder)
    first = {name: (folder / name).read_text() for name in FILES}
    project = tomllib.loads(first["pyproject.toml"])["project"]
    assert project["urls"]["Homepage"] == "https://forge.example/few/fire"
    assert project["scripts"] == {"fewfire": "fewfire.cli:main"} and project["version"] in first["README.md"]
    assert 'repository-code: "https://forge.example/few/fire"\n' in first["CITATION.cff"]
    assert "git clone https://forge.example/few/fire && cd fewfire\nmake demo" in first["README.md"]
    assert (
        f'src="https://forge.example/few/fire/raw/v{project["version"]}/docs/images/report-light.png"'
        in first["README.md"]
    )
    assert '"docs/images' not in first["README.md"]
    address.main(["https://forge.example/few/fire"], folder)
    assert first == {name: (folder / name).read_text() for name in FILES}


def test_files_may_lie_elsewhere_and_the_address_is_whole(folder, capsys):
    address.main(["https://forge.example/few/fire", "--raw", "https://files.example/f"], folder)
    assert 'srcset="https://files.example/f/docs/images/report-dark.png"' in (folder / "README.md").read_text()
    with pytest.raises(SystemExit):
        address.main(["forge.example/few/fire"], folder)
    assert "address must be a whole one that begins with https://" in capsys.readouterr().err
