"""Answers of openml.org, in the form it gives them, for a set of seven rows: two numbers, a category, two classes.

They are laid where scikit-learn keeps its downloads (SCIKIT_LEARN_DATA), so that nothing is asked of the network.
"""

import gzip
import hashlib
import json

ARFF = """@RELATION tiny
@ATTRIBUTE age NUMERIC
@ATTRIBUTE colour {red,green,blue}
@ATTRIBUTE height REAL
@ATTRIBUTE class {N,P}
@DATA
10,red,1.5,P
20,blue,2.5,N
30,green,3.5,P
40,green,4.5,N
50,red,5.5,N
60,blue,6.5,P
70,blue,7.25,N
"""
COLUMNS = (("age", "numeric"), ("colour", "nominal"), ("height", "numeric"), ("class", "nominal"))


def record(folder, number, md5=None, **kinds):
    """Write the four answers for data set `number` below `folder`; `kinds` are other types of columns."""
    md5 = md5 or hashlib.md5(ARFF.encode()).hexdigest()
    description = {
        "id": str(number), "name": "tiny", "version": "1", "description": "made up", "format": "ARFF",
        "status": "active", "file_id": "7", "default_target_attribute": "class", "md5_checksum": md5,
        "url": "https://api.openml.org/data/v1/download/7/tiny.arff",
    }  # fmt: skip
    features = [
        {"index": str(place), "name": name, "data_type": kinds.get(name, kind), "is_target": str(name == "class").lower(),
         "is_ignore": "false", "is_row_identifier": "false", "number_of_missing_values": "0"}
        for place, (name, kind) in enumerate(COLUMNS)
    ]  # fmt: skip
    answers = {
        f"api/v1/json/data/{number}": json.dumps({"data_set_description": description}),
        f"api/v1/json/data/features/{number}": json.dumps({"data_features": {"feature": features}}),
        f"api/v1/json/data/qualities/{number}": json.dumps(
            {"data_qualities": {"quality": [{"name": "NumberOfInstances", "value": "7.0"}]}}
        ),
        "data/v1/download/7/tiny.arff": ARFF,
    }
    for path, text in answers.items():
        file = folder / "openml" / "openml.org" / f"{path}.gz"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(gzip.compress(text.encode()))
