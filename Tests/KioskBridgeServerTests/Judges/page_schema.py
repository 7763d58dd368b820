"""The published schema of the messages between page and host."""
import json
from pathlib import Path

SCHEMA = Path(__file__).resolve().parents[3] / "Sources/KioskBridge/Documentation.docc/Resources/bridge.schema.json"


def faults(frames):
    """What of the messages between page and host is not as the schema has it."""
    import jsonschema

    definitions = json.loads(SCHEMA.read_text())["$defs"]
    sides = {sent: jsonschema.Draft202012Validator(
        {"$ref": f"#/$defs/{'fromPage' if sent else 'fromHost'}", "$defs": definitions}) for sent in [True, False]}
    for sent, text in frames:
        message = json.loads(text)
        for error in sides[sent].iter_errors(message):
            best = jsonschema.exceptions.best_match([error])
            yield f"{message['payload'].get('action')}: {best.message[:300]}"
