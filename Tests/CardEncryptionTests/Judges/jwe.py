#!/usr/bin/env python3
"""Makes keys, seals and opens compact JWE with the libraries jwcrypto and joserfc: what they make of them is the oracle.

    jwe.py jwcrypto|joserfc < REQUEST

REQUEST is a JSON object: do "generate" with alg and kid, "seal" with jwk, header and text, or "open" with jwk and jwe.
Prints a JSON object.
"""
import json
import sys


class JWCrypto:
    def generate(self, alg, kid):
        from jwcrypto import jwk

        kind = {"kty": "RSA", "size": 2048} if alg.startswith("RSA") else {"kty": "EC", "crv": "P-256"}
        key = jwk.JWK.generate(use="enc", alg=alg, kid=kid, **kind)
        return key.export_private(), key.export_public()

    def seal(self, key, header, text):
        from jwcrypto import jwe, jwk

        token = jwe.JWE(text.encode(), protected=json.dumps(header), recipient=jwk.JWK.from_json(key))
        return token.serialize(compact=True)

    def open(self, key, text):
        from jwcrypto import jwe, jwk

        token = jwe.JWE()
        token.deserialize(text, jwk.JWK.from_json(key))
        return token.jose_header, token.payload


class JOSERFC:
    algorithms = ["ECDH-ES", "ECDH-ES+A256KW", "RSA-OAEP-256", "A256GCM"]

    def registry(self):
        from joserfc.jwe import JWERegistry

        return JWERegistry(algorithms=self.algorithms, strict_check_header=False)

    def key(self, text):
        from joserfc.jwk import ECKey, RSAKey

        members = json.loads(text)
        return (RSAKey if members["kty"] == "RSA" else ECKey).import_key(members)

    def generate(self, alg, kid):
        from joserfc.jwk import ECKey, RSAKey

        parameters = {"use": "enc", "alg": alg, "kid": kid}
        if alg.startswith("RSA"):
            key = RSAKey.generate_key(2048, parameters)
        else:
            key = ECKey.generate_key("P-256", parameters)
        return json.dumps(key.as_dict(private=True)), json.dumps(key.as_dict(private=False))

    def seal(self, key, header, text):
        from joserfc import jwe

        return jwe.encrypt_compact(header, text.encode(), self.key(key), registry=self.registry())

    def open(self, key, text):
        from joserfc import jwe

        token = jwe.decrypt_compact(text, self.key(key), registry=self.registry())
        return token.headers(), token.plaintext


library = {"jwcrypto": JWCrypto, "joserfc": JOSERFC}[sys.argv[1]]()
request = json.load(sys.stdin)
if request["do"] == "generate":
    private, public = library.generate(request["alg"], request["kid"])
    print(json.dumps({"private": private, "public": public}))
elif request["do"] == "seal":
    print(json.dumps({"jwe": library.seal(request["jwk"], request["header"], request["text"])}))
else:
    header, plaintext = library.open(request["jwk"], request["jwe"])
    print(json.dumps({"header": header, "text": plaintext.decode()}))
