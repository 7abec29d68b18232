"""The community's German, spoken by a few."""

from modwatch_lab.community.lexicon import Lexicon, words

GERMAN = Lexicon(
    language="de",
    sentences={
        "insult": (
            "du {adjective}er {insult}, lass {thing} in Ruhe",
            "was bist du nur für ein {insult}, {name}",
            "so etwas über {thing} schreibt nur ein {insult} wie du",
        ),
        "disguised": (
            "du {disguised}, bleib weg von {place}",
            "{name} ist ein {adjective}er {disguised}",
        ),
        "coined": (
            "schon wieder voll {insult}, {name}",
            "der {insult} von {place} hat gesprochen",
        ),
        "dismissal": (
            "niemand hat dich gefragt, {name}, verschwinde aus {place}",
            "du verstehst nichts von {thing} und wirst es nie verstehen",
            "hör endlich auf, über {thing} zu schreiben",
        ),
        "ill_wish": (
            "hoffentlich fällt dein Fahrrad in den Teich, {name}",
            "möge dein Regenschirm bei {place} für immer klemmen",
        ),
        "group_blame": (
            "die {group} machen {thing} immer kaputt, schickt sie alle fort",
            "typisch {group}, zu {adjective} für {thing}",
        ),
        "sarcasm": (
            "großartig, {name} erklärt uns wieder {thing}, was für ein Glück",
            "vielen Dank, ohne dich wüssten wir nichts über {thing}, du Genie",
        ),
        "opinion": (
            "ich finde {thing} dieses Jahr schön",
            "{place} sollte am {weekday} früher öffnen",
            "bei {place} fehlt es an {thing}",
        ),
        "question": (
            "weiß jemand, wann {place} am {weekday} öffnet",
            "wer kümmert sich um {thing}",
        ),
        "praise": (
            "vielen Dank, {name}, {thing} war großartig",
            "was für ein Glück, dass du dich um {thing} kümmerst, {name}",
        ),
        "harmless_word": (
            "ins Rezept gehört ein {insult} und etwas Salz",
            "unser Esel heißt {insult} und steht bei {place}",
        ),
        "reported": (
            "jemand hat mich bei {place} '{insult}' genannt, das war nicht nett",
            "bitte schreibt hier nicht '{insult}'",
        ),
        "negated": (
            "du bist doch kein {insult}, {name}, {thing} fällt allen schwer",
            "niemand hält dich für {adjective}",
        ),
        "self_mockery": (
            "ich {insult} habe {thing} bei {place} vergessen",
            "ich war am {weekday} wieder so {adjective}",
        ),
        "group_mention": (
            "die {group} laden am {weekday} zu {place} ein",
            "die {group} pflegen {thing} seit Jahren",
        ),
        "criticism": (
            "der Plan für {thing} ist {adjective} von vorn bis hinten",
            "so ein Unsinn, {place} kann {thing} nicht bezahlen",
        ),
        "teasing": (
            "du alter {insult}, danke für {thing}",
            "na, {name}, wer ist jetzt {adjective}, du {insult}",
        ),
    },
    fillers=(
        "am {weekday} war ich bei {place}",
        "{name} hat letzte Woche über {thing} geschrieben",
        "es hat wieder geregnet",
        "mehr über {thing} am {weekday}",
        "alle reden von {thing}",
    ),
    softeners=("nichts für ungut,", "vielleicht liegt es an mir:", "🙂", "mit Verlaub,"),
    sharpeners=("IM ERNST,", "zum letzten Mal:", "jetzt reicht es!!", "😡"),
    words={
        "adjective": words("muffig, welk, hohl, lauwarm, klapprig, dusselig, fad"),
        "insult": words(
            "Kohlkopf, Pudding, Waschlappen, Rettich, Eimer, Trottel, Windbeutel, Kürbis, "
            "Nudelholz, Sockenhalter, Pfannkuchen, Blumentopf"
        ),
        "name": words("Wimbrel, Tovey, Odalind, Pask, Merrin, Jorvane, Sib, Isk"),
        "weekday": words("Montag, Dienstag, Mittwoch, Donnerstag, Freitag, Samstag"),
    },
    topics={
        "allotments": {
            "thing": words("Komposthaufen, Bohnenbeete, Gießdienst, Saatgut, Gewächshäuser"),
            "place": words("Gartenhütte, Südtor, Obstwiese"),
        },
        "trams": {
            "thing": words("Fahrpläne, Nachtbahnen, Fahrkarten, Linie sieben, Haltestellen"),
            "place": words("Haltestelle Nethermill, Depot, Fähre"),
        },
        "cakes": {
            "thing": words("Pflaumenkuchen, Backwettbewerb, Zuckerguss, Lebkuchen, Torten"),
            "place": words("Gemeindeküche, Teezelt, Hafenbäckerei"),
        },
        "lighthouse": {
            "thing": words("Leuchtturmlampe, Nebelhorn, Farbspenden, Möwenzählung"),
            "place": words("Skerry-Spitze, Bootsschuppen, Wärterhaus"),
        },
        "choir": {
            "thing": words("Winterkonzert, Tenorreihe, Notenblätter, Probe, Zugabe"),
            "place": words("Kapelle, Probenraum, Musikpavillon"),
        },
        "village_football": {
            "thing": words("Sonntagsspiel, Abseits, Tornetz, Halbzeittee, Pokal"),
            "place": words("Sportplatz, Vereinsheim, Seitenlinie"),
        },
        "kite_licences": {
            "thing": words("Drachenschein, Windgebühr, Schnurprüfung, Formular K9"),
            "place": words("Drachenamt, Dünenparkplatz"),
        },
        "comet_night": {
            "thing": words("Komet, Fernrohr, Sternkarte, Verdunkelung"),
            "place": words("Sternwarte, Dunkelwiese"),
        },
    },
    groups=("Nordufer-Leute", "Hügelhirten", "Hafenbäcker", "Laternenhüter"),
    belongings=("als eine der {group}:", "Grüße von den {group},"),
)
