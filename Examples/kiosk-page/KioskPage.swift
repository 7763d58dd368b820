/// The files of the example page, which the compiler embeds.
package enum KioskPage {
    /// A file as the server sends it.
    package struct File: Sendable {
        /// For the header field `Content-Type`.
        package let contentType: String
        package let bytes: [UInt8]
    }

    /// The files by their paths on the server; `/` is the page itself.
    package static let files: [String: File] = [
        "/": File(contentType: "text/html; charset=utf-8", bytes: PackageResources.index_html),
        "/style.css": File(contentType: "text/css; charset=utf-8", bytes: PackageResources.style_css),
        "/icon.svg": File(contentType: "image/svg+xml", bytes: PackageResources.icon_svg),
        "/checkout.css": File(contentType: "text/css; charset=utf-8", bytes: PackageResources.checkout_css),
        "/app.js": script(PackageResources.app_js),
        "/checkout.js": script(PackageResources.checkout_js),
        "/dom.js": script(PackageResources.dom_js),
        "/idle.js": script(PackageResources.idle_js),
        "/keypad.js": script(PackageResources.keypad_js),
        "/mrz.js": script(PackageResources.mrz_js),
        "/passport.js": script(PackageResources.passport_js),
        "/sound.js": script(PackageResources.sound_js),
        "/strings.js": script(PackageResources.strings_js),
        "/views.js": script(PackageResources.views_js),
    ]

    private static func script(_ bytes: [UInt8]) -> File {
        File(contentType: "text/javascript; charset=utf-8", bytes: bytes)
    }
}
