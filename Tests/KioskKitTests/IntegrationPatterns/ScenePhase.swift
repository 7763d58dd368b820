// The other files here are as an integration guide for Apple's module has them, with `import KioskKit` added above: source
// that knows nothing of this package.  This one is what such source has from SwiftUI.

enum ScenePhase {
    case background
    case inactive
    case active
}
