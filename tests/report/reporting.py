"""Data, models and a reader of reports for the tests in this folder."""

from html.parser import HTMLParser

from hcpf import HCPF, Interactions, simulate

SECTIONS = [
    "headline", "prediction", "values", "convergence", "activity", "components", "examples",
    "users",
]  # fmt: skip
_VOID = {"meta", "link", "input", "br"}


def drawn(element, n_users=24, n_items=18, seed=0):
    """Entries drawn from the model."""
    return simulate(n_users, n_items, density=0.25, element=element, random_state=seed).interactions


def unfitted(k=3, **settings):
    return HCPF(k, **{"max_iter": 5, "n_fits": 1, "random_state": 0, **settings})


def fitted(data, k=3, **settings):
    return unfitted(k, **settings).fit(data)


def with_ids(data, users, items):
    return Interactions.from_matrix(data.matrix, users=users, items=items)


class Page(HTMLParser):
    """What is in a report: its tags must nest, or this fails."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.ids, self.cells, self.texts = [], [], [], [], []
        self.attributes = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        self.ids += [value for name, value in attrs if name == "id"]
        if tag not in _VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("script", "style"):
            self.texts.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.texts).split())


def read(path):
    return Page(path.read_text(encoding="utf-8"))
