/// Libraries and tools as boxes, each above what it depends on, with the arrows that do not follow from others.
struct Picture {
    private let rows: [[String]]
    private let arrows: [(from: String, to: String)]

    init(_ manifest: Manifest) {
        let shown = manifest.targets.filter {
            !["plugin", "system"].contains($0.type)
                && ($0.folder.hasPrefix("Sources/") || $0.folder.hasPrefix("Tools/"))
        }
        let names = Set(shown.map(\.name))
        let direct = Dictionary(
            uniqueKeysWithValues: shown.map { ($0.name, Set($0.dependencies.map(\.name)).intersection(names)) })
        var all: [String: Set<String>] = [:]
        func reach(_ name: String) -> Set<String> {
            if let known = all[name] { return known }
            let reached = (direct[name] ?? []).reduce(into: direct[name] ?? []) { $0.formUnion(reach($1)) }
            all[name] = reached
            return reached
        }
        let essential = names.map { name in
            let targets = direct[name] ?? []
            return (name, targets.filter { target in !targets.contains { reach($0).contains(target) } })
        }
        arrows = essential.flatMap { from, targets in targets.map { (from, $0) } }.sorted {
            ($0.from, $0.to) < ($1.from, $1.to)
        }
        var rows: [[String]] = []
        let heights = Dictionary(uniqueKeysWithValues: names.map { ($0, Self.height($0, direct)) })
        for height in 0...(heights.values.max() ?? 0) {
            rows.append(names.filter { heights[$0] == height }.sorted())
        }
        // From below, each under the middle of what it depends on.
        for index in rows.indices.dropFirst() {
            let below = Dictionary(
                uniqueKeysWithValues: rows[..<index].flatMap { row in
                    row.enumerated().map { ($1, (Double($0) + 0.5) / Double(row.count)) }
                })
            let middles = Dictionary(
                uniqueKeysWithValues: rows[index].map { name in
                    let places = (direct[name] ?? []).compactMap { below[$0] }
                    return (name, places.reduce(0, +) / Double(max(places.count, 1)))
                })
            rows[index].sort { (middles[$0] ?? 0, $0) < (middles[$1] ?? 0, $1) }
        }
        self.rows = rows
    }

    private static func height(_ name: String, _ direct: [String: Set<String>]) -> Int {
        (direct[name] ?? []).map { height($0, direct) + 1 }.max() ?? 0
    }

    var svg: String {
        let (width, height, gap) = (1180, 26, 44)
        let total = rows.count * (height + gap)
        var boxes: [String: (x: Int, y: Int, width: Int)] = [:]
        for (number, row) in rows.enumerated() {
            let y = total - (number + 1) * (height + gap) + gap / 2
            for (place, name) in row.enumerated() {
                boxes[name] = ((2 * place + 1) * width / (2 * row.count), y, name.count * 8 + 16)
            }
        }
        var lines = [
            #"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 \#(width) \#(total)" font-family="monospace" font-size="12">"#,
            #"<rect width="100%" height="100%" fill="white"/>"#,
            #"<marker id="a" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">"#
                + #"<path d="M0 0 8 4 0 8z" fill="slategray"/></marker>"#,
        ]
        let sources = Set(arrows.map(\.from)).sorted()
        for (from, to) in arrows {
            // One color for all arrows of a target: some pass behind others' boxes.
            let hue = (sources.firstIndex(of: from) ?? 0) * 137 % 360
            guard let from = boxes[from], let to = boxes[to] else { continue }
            lines.append(
                #"<path d="M\#(from.x) \#(from.y + height) \#(to.x) \#(to.y)" stroke="hsl(\#(hue) 55% 45%)" fill="none" marker-end="url(#a)"/>"#
            )
        }
        for (name, box) in boxes.sorted(by: { $0.key < $1.key }) {
            lines.append(
                #"<rect x="\#(box.x - box.width / 2)" y="\#(box.y)" width="\#(box.width)" height="\#(height)" rx="4" fill="aliceblue" stroke="slategray"/>"#
                    + #"<text x="\#(box.x)" y="\#(box.y + 17)" text-anchor="middle">\#(name)</text>"#)
        }
        return (lines + ["</svg>", ""]).joined(separator: "\n")
    }
}
