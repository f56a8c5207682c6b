"""Facts about each data set: source, terms, contents.

The loaders and `ddlcn data` read them here. A content checksum is computed from what the loader returns
(see `content.py`), so it does not depend on how the set is packed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Download:
    """A file with a public address.

    Parameters
    ----------
    url : str
    file : str
        Its name in the data set's folder.
    checksum : str
        Algorithm and hexadecimal digest, such as "md5:9fb6...".
    """

    url: str
    file: str
    checksum: str


@dataclass(frozen=True)
class Record:
    """One data set.

    Parameters
    ----------
    name, title : str
        The argument of `load_dataset`, and the name for headings.
    folder : str
        Its folder under the data root.
    files : tuple of str
        Files that the loader tries in that folder, in this order.
    n_classes, n_images : int
        Of a complete copy, without excluded files.
    source, terms, how_to_get : str
        Text for `ddlcn data list`.
    content : mapping of str to str
        SHA-256 of the parts of the content; empty if unknown.
    downloads : tuple of Download
        Empty if there is no public address.
    note : str
        Which images are included.
    shows_people, people_classes
        See `Dataset`.
    """

    name: str
    title: str
    folder: str
    files: tuple[str, ...]
    n_classes: int
    n_images: int
    source: str
    terms: str
    how_to_get: str
    content: Mapping[str, str] = field(default_factory=dict)
    downloads: tuple[Download, ...] = ()
    note: str = ""
    shows_people: bool = False
    people_classes: frozenset[str] = frozenset()


MNIST_MIRROR = "https://ossci-datasets.s3.amazonaws.com/mnist"
MNIST_MD5 = {
    "train-images-idx3-ubyte.gz": "f68b3c2dcbeaaa9fbdd348bbdeb94873",
    "train-labels-idx1-ubyte.gz": "d53e105ee54ea40749a09fcbcd1e9432",
    "t10k-images-idx3-ubyte.gz": "9fb629c4189551a2d022fa330f9573f3",
    "t10k-labels-idx1-ubyte.gz": "ec29112dd5afa0611ce80d1b7f02629c",
}
MNIST_UNPACKED_SHA256 = {
    "train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    "train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    "t10k-images-idx3-ubyte": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    "t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
}
YALEB_SOURCE = "UCSD computer vision group, the cropped version (CroppedYale)"
YALEB_TERMS = "free for research; cite Georghiades et al. 2001 and Lee et al. 2005"
YALEB_HOW = (
    "Its old public address no longer works: ask the authors, or a group that has it, for the cropped version. "
    "Put CroppedYale.zip, or the folder CroppedYale unpacked from it, into the folder yaleb."
)
CALTECH101_FILES = (
    "101_ObjectCategories",
    "caltech-101/101_ObjectCategories",
    "101_ObjectCategories.tar.gz",
    "caltech-101/101_ObjectCategories.tar.gz",
    "caltech-101.zip",
)
CALTECH101_SOURCE = "CaltechDATA, https://data.caltech.edu/records/mzrjq-6wc02"
CALTECH101_TERMS = "CC BY 4.0; cite Fei-Fei et al. 2004"
OMNIGLOT_ADDRESS = "https://github.com/brendenlake/omniglot/raw/master/python"
OMNIGLOT_SOURCE = "Brenden Lake, https://github.com/brendenlake/omniglot"
OMNIGLOT_TERMS = "MIT licence; cite Lake, Salakhutdinov and Tenenbaum 2015"
EXCLUDED_RULE = (
    "Extended Yale B without the 10 worst-lit images of each person. The file name holds the light's azimuth A and "
    "elevation E; the angle between light and camera axis is arccos(cos A cos E); the 10 images with the largest "
    "angle are left out, ties by file name."
)
DARKEST_RULE = (
    "Extended Yale B without the 10 images of each person that have the smallest mean grey value, ties by file name. "
    'Papers that leave out "bad images" do not say which; with this rule other methods reach what was published for '
    "them, with the angle's they stay one to two points below."
)

_RECORDS = (
    Record(
        name="yaleb",
        title="Extended Yale B",
        folder="yaleb",
        files=("CroppedYale", "CroppedYale.zip"),
        n_classes=38,
        n_images=2414,
        source=YALEB_SOURCE,
        terms=YALEB_TERMS,
        how_to_get=YALEB_HOW,
        content={"images": "e3812fbb1ebf3d5b404e83e230c9a9c58bdd69feae7a7b33542e5401f2ef842d"},
        shows_people=True,
    ),
    Record(
        name="yaleb-excluded",
        title="Extended Yale B, excluded",
        folder="yaleb",
        files=("CroppedYale", "CroppedYale.zip"),
        n_classes=38,
        n_images=2414 - 38 * 10,
        source=YALEB_SOURCE,
        terms=YALEB_TERMS,
        how_to_get=YALEB_HOW,
        note=EXCLUDED_RULE,
        shows_people=True,
    ),
    Record(
        name="yaleb-lit",
        title="Yale B, darkest out",
        folder="yaleb",
        files=("CroppedYale", "CroppedYale.zip"),
        n_classes=38,
        n_images=2414 - 38 * 10,
        source=YALEB_SOURCE,
        terms=YALEB_TERMS,
        how_to_get=YALEB_HOW,
        note=DARKEST_RULE,
        shows_people=True,
    ),
    Record(
        name="ar",
        title="AR faces",
        folder="ar",
        files=("ar_42x30_100x26.npz", "."),
        n_classes=100,
        n_images=2600,
        source="Martinez and Benavente 1998, Ohio State University and CVC Barcelona",
        terms="by request from its owners, for research only; not to be passed on",
        how_to_get=(
            "Ask its owners for the cropped images of 50 men and 50 women. Put the files M-001-01.bmp ... "
            "W-050-26.bmp (in folders or not), or ar_42x30_100x26.npz made from them, into the folder ar."
        ),
        content={"images": "b8b38c01e608371b88651a6c7e460dda26db0f9bf330cf7fc6dac67ef0e2886b"},
        shows_people=True,
    ),
    Record(
        name="caltech101",
        title="Caltech 101",
        folder="caltech101",
        files=CALTECH101_FILES,
        n_classes=101,
        n_images=8677,
        source=CALTECH101_SOURCE,
        terms=CALTECH101_TERMS,
        how_to_get="ddlcn data fetch caltech101 (137 MB)",
        content={"names and sizes": "60f0a33adda67749bbbd2f584e40bc47169d3bb2a13d246a4c74dbd25d1138dc"},
        downloads=(
            Download(
                "https://data.caltech.edu/records/mzrjq-6wc02/files/caltech-101.zip",
                "caltech-101.zip",
                "md5:3138e1922a9193bfa496528edbbc45d0",
            ),
        ),
        note="The folder BACKGROUND_Google is no object class and is left out.",
        people_classes=frozenset({"Faces", "Faces_easy"}),
    ),
    Record(
        name="caltech102",
        title="Caltech 101 + background",
        folder="caltech101",
        files=CALTECH101_FILES,
        n_classes=102,
        n_images=9144,
        source=CALTECH101_SOURCE,
        terms=CALTECH101_TERMS,
        how_to_get="ddlcn data fetch caltech101 puts it into the folder caltech101.",
        note="Caltech 101 with the folder BACKGROUND_Google as one more class, as papers with 102 classes have it.",
        people_classes=frozenset({"Faces", "Faces_easy", "BACKGROUND_Google"}),
    ),
    Record(
        name="caltech256",
        title="Caltech 256",
        folder="caltech256",
        files=("256_ObjectCategories", "256_ObjectCategories.tar"),
        n_classes=256,
        n_images=29780,
        source="CaltechDATA, https://data.caltech.edu/records/nyy15-4j048",
        terms="CC BY 4.0; cite Griffin et al. 2007",
        how_to_get="ddlcn data fetch caltech256 (1.2 GB)",
        downloads=(
            Download(
                "https://data.caltech.edu/records/nyy15-4j048/files/256_ObjectCategories.tar",
                "256_ObjectCategories.tar",
                "md5:67b4f42ca05d46448c6bb8ecd2220f6d",
            ),
        ),
        note="The folder 257.clutter is no object class and is left out, as are stray files.",
        people_classes=frozenset({"159.people", "253.faces-easy-101"}),
    ),
    Record(
        name="mnist",
        title="MNIST",
        folder="mnist",
        files=tuple(MNIST_MD5),
        n_classes=10,
        n_images=70000,
        source="LeCun, Cortes and Burges 1998; the mirror that torchvision uses",
        terms="CC BY-SA 3.0; cite LeCun et al. 1998",
        how_to_get="ddlcn data fetch mnist (12 MB)",
        content=MNIST_UNPACKED_SHA256,
        downloads=tuple(Download(f"{MNIST_MIRROR}/{file}", file, f"md5:{md5}") for file, md5 in MNIST_MD5.items()),
    ),
    Record(
        name="omniglot",
        title="Omniglot",
        folder="omniglot",
        files=("all_runs", "run01", "all_runs.zip"),
        n_classes=400,
        n_images=800,
        source=OMNIGLOT_SOURCE,
        terms=OMNIGLOT_TERMS,
        how_to_get="ddlcn data fetch omniglot (0.4 MB)",
        content={"images": "4e4fe88eab15195523988fe1804aecd3af2194cbd43d64a4b15fdbf66b9f02a7"},
        downloads=(
            Download(
                f"{OMNIGLOT_ADDRESS}/one-shot-classification/all_runs.zip",
                "all_runs.zip",
                "sha256:437c1eeab0af8484112e1b4cc0f3d541ec727f7c47b9b202da738af9dfd6c325",
            ),
        ),
        note="20 runs of 20 characters, one training and one test drawing of each. Choose settings on the background.",
    ),
    Record(
        name="omniglot-background",
        title="Omniglot background",
        folder="omniglot",
        files=(
            "images_background_small1",
            "images_background_small1.zip",
            "images_background_small2",
            "images_background_small2.zip",
        ),
        n_classes=242,
        n_images=4840,
        source=OMNIGLOT_SOURCE,
        terms=OMNIGLOT_TERMS,
        how_to_get="ddlcn data fetch omniglot-background (2.9 MB)",
        content={"images": "63500e9706fd3d02aaba3cafec9232ebe5b2dd6c4fb1178fc76b28d5061cb205"},
        downloads=(
            Download(
                f"{OMNIGLOT_ADDRESS}/images_background_small1.zip",
                "images_background_small1.zip",
                "sha256:f38eb80f801274ac2b4dff5b24289016bfaba4a7d5bb50deebf27104ad6cb8a4",
            ),
            Download(
                f"{OMNIGLOT_ADDRESS}/images_background_small2.zip",
                "images_background_small2.zip",
                "sha256:3ccaa407515a8778e5d0861875af38b17e418f301ad5bb3b5a6b65d901a41c7f",
            ),
        ),
        note=(
            "Two sets of five alphabets, 20 drawings of each character; Greek and Latin are in both and count once. "
            "Get it: ddlcn data fetch omniglot-background (2.9 MB)."
        ),
    ),
)
CATALOGUE: dict[str, Record] = {record.name: record for record in _RECORDS}


def find_record(name: str) -> Record:
    """Return the record of a data set; raises ValueError with the known names."""
    if name not in CATALOGUE:
        raise ValueError(f"unknown data set {name!r}: choose one of {', '.join(CATALOGUE)}")
    return CATALOGUE[name]
