"""A small wiki with everything that is difficult, and the links it is known to have."""

LONG = "L" + "ö" * 127
"""255 bytes, the most that a title can have."""
MANY = [f"Small page {number}" for number in range(520)]
GONE = [f"Gone page {number}" for number in range(90)]

REDIRECTS = {
    "Alias": "Zürich",
    "Double": "Alias",
    "Triple": "Double",
    "Loop A": "Loop B",
    "Loop B": "Loop A",
    "Loop alone": "Loop alone",
    "Broken": "Nowhere",
    "Self again": "Start",
    "Out of here": "Category:Towns",
    "東京都": "東京",
}

TEXTS = {
    "Start": (
        "'''Start''' is where it begins, with [[Start|itself]] and [[Self again]].\n\n"
        "It knows [[alias]], [[Double]], [[Triple]], [[Loop A]], [[Loop alone]], "
        "[[Broken]], [[Out of here]], [[missing page]], [[東京都]], [[Hub]], "
        "[[Zürich#History|a town]], [[zürich]], [[Name_with_underscores]], "
        "[[Talk:Start]], [[:Category:Towns]], [[Category:Towns]], "
        f"[http://example.org no article], [[{LONG}]], "
        "<nowiki>[[Not a link]]</nowiki> <!-- [[Nor this]] -->\n\n"
        '== More ==\nOf [[Quotes "and" & others\' 100%]] and [[A+B=C?]]. {{Box}}\n'
    ),
    "Zürich": "Zürich is a town. [[Start]] [[/Part]] {{Box|extra=Only here}}",
    "東京": "東京 is a city. [[Zürich]] [[東京都]] [[Émile 😀]]",
    "Émile 😀": "Émile has a face. {{:Zürich}}",
    LONG: f"Long. [[{LONG}]] [[Start]] [[ {LONG} ]]",
    "Name with underscores": "Underscores. [[Name with underscores]]",
    'Quotes "and" & others\' 100%': "Quotes. [[Start]] [[<bad>]]",
    "A+B=C?": "Sums. {{#if: yes | [[東京]] | [[Never]] }}",
    "Hub": "Hub. " + " ".join(f"[[{title}]]" for title in [*MANY, *GONE]),
    "Lonely": "Lonely links [[Start]], and nobody links it.",
    **{title: f"{title} is small. [[Hub]] [[{title}]]" for title in MANY[:-1]},
    MANY[-1]: "The last one is without any link.",
    "Template:Box": (
        "[[From a box]] [[Double]] {{#if: {{{extra|}}} | [[{{{extra}}}]] }}"
        "<noinclude>[[Only in the template]]</noinclude>"
    ),
    "Only here": "Only here is an article. [[Self again]]",
    "Talk:Start": "Talk about [[Lonely]].",
    "Category:Towns": "Towns, such as [[Lonely]].",
    **{title: f"#REDIRECT [[{target}]]" for title, target in REDIRECTS.items()},
    "東京都": "#REDIRECT [[東京#History]]",
}

LINKS = {
    "Start": [
        *("Zürich", "東京", "Hub", "Name with underscores", LONG),
        *('Quotes "and" & others\' 100%', "A+B=C?"),
    ],
    "Zürich": ["Start", "Only here"],
    "東京": ["Zürich", "Émile 😀"],
    "Émile 😀": ["Zürich", "Start", "Only here"],
    LONG: ["Start"],
    "Name with underscores": [],
    'Quotes "and" & others\' 100%': ["Start"],
    "A+B=C?": ["東京"],
    "Hub": MANY,
    "Only here": ["Start"],
    **{title: ["Hub"] for title in MANY[:-1]},
    MANY[-1]: [],
}
"""The articles that each article reached from Start links, redirects followed."""

ALIASES = {
    "Alias": "Zürich",
    "Double": "Zürich",
    "Triple": "Zürich",
    "Self again": "Start",
    "東京都": "東京",
}
MISSING = {"Missing page", "From a box", "/Part", *GONE}
