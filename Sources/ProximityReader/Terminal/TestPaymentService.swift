/// A payment service for tests and development: anybody can sign in its name.
///
/// Its private key is published with the tool psp-sandbox.  A terminal that takes money must have other keys.
package enum TestPaymentService {
    /// The public key, as a JSON Web Key Set.
    package static let keySet = """
        {"keys":[{"kty":"EC","crv":"P-256","use":"sig","alg":"ES256","kid":"test-payment-service",\
        "x":"A7bzZSKUJQVoRrbhhBeotBS9K9D8EecwZ6pYLsTrD_k","y":"aE9mO7DM_syqfuBYF61tL8VPRBgKoSqG3AciFM2laRs"}]}
        """

    /// The thumbprint of the key (RFC 7638): the SHA-256 of its canonical form, computed with `openssl dgst`.
    static let thumbprint = "ZgoZU4V9QuLqLSYfG7Ge1od9GDyvpLIk0ewjtYR_pFI"
}
