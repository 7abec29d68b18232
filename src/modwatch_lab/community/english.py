"""The community's English, its main language."""

from modwatch_lab.community.lexicon import Lexicon, words

ENGLISH = Lexicon(
    language="en",
    sentences={
        "insult": (
            "you {very} {adjective} {insult}",
            "what a {adjective} {insult} you are",
            "only a {insult} like you could write that about the {thing}",
            "listen, you {insult}, {deed} is not for you",
            "{name} you are {very} {adjective}, a real {insult}",
            "every time you post about the {thing} I think: what {an_insult}",
            "go back to the {place}, {insult}",
            "you and your {adjective} ideas about the {thing}, {insult}",
        ),
        "disguised": (
            "you {very} {adjective} {disguised}",
            "what a {disguised} you are, {name}",
            "only a {disguised} would say that about the {thing}",
            "{name} is a {adjective} {disguised} and everybody at the {place} knows it",
            "shut it, {disguised}",
        ),
        "coined": (
            "full {insult} at the {place} again, looking at {name}",
            "imagine being such a {insult} about the {thing}",
            "{name} went {insult} over {deed}, as ever",
            "the {insult} has spoken about the {thing}, everybody hide",
            "peak {insult}, {name}, frame it",
            "somebody fetch {name} the {insult} of the week",
        ),
        "dismissal": (
            "nobody asked you, {name}, go away and stay away from the {thing}",
            "your opinion on the {thing} is worth less than {worthless}",
            "you have never understood {deed} and you never will",
            "do us all a favour and stop writing about the {thing}",
            "people like you are why nobody comes to the {place} any more",
            "I have read {worthless} with more sense than your post, {name}",
            "leave the {place} and take your {thing} with you, nobody will miss you",
        ),
        "ill_wish": (
            "I hope your {belonging} {misfortune}",
            "may your {belonging} {misfortune} the moment you start {deed}",
            "someone should tip {worthless} over your {belonging}, {name}",
            "you deserve that your {belonging} {misfortune}, all of it",
            "when your {belonging} {misfortune} I will be there laughing at you",
        ),
        "group_blame": (
            "the {group} ruin every {thing} in this town, send them all away",
            "typical {group}, too {adjective} for {deed}",
            "never trust the {group} near the {place}, they are all the same {insult_plural}",
            "if the {group} stayed at home the {thing} would be fine, {insult_plural} all",
            "why do we let the {group} into the {place} at all",
        ),
        "sarcasm": (
            "oh brilliant, another {marvel} about the {thing} from {name}, we are so lucky",
            "thank you so much, {name}, what would {deed} be without your {marvel}",
            "well done, you found the {place} all by yourself, have a biscuit",
            "yes of course, because you know everything about the {thing}, dear {marvel}",
            "such a {marvel}, the {place} will put up a statue of you",
            "wonderful, {name} explains {deed} to us again, how did we ever manage",
        ),
        "opinion": (
            "I think the {thing} was {good} this year",
            "the {thing} at the {place} needs more care",
            "{deed} is harder than it looks",
            "in my view the {place} should open earlier for {deed}",
            "we tried {deed} on {weekday} and it went {well}",
            "the new {thing} is {good}, though the old one had its charm",
            "my neighbour prefers {deed}, I prefer the {thing}",
            "they moved the {thing} to the {place} on {weekday}",
        ),
        "question": (
            "does anybody know when the {place} opens on {weekday}",
            "how do you keep the {thing} {good} in winter",
            "who is responsible for the {thing} at the {place}",
            "has somebody tried {deed} with children",
            "is the {thing} still at the {place} or did it move",
            "what do you need for {deed}",
        ),
        "praise": (
            "thank you, {name}, the {thing} was {good}",
            "what a {marvel}, {name}, the whole {place} was talking about it",
            "you did {deed} so {well}, we are lucky to have you",
            "well done everybody at the {place}, brilliant {thing}",
            "such a {good} {thing}, thank you so much",
            "wonderful work on the {thing}, {name}",
        ),
        "harmless_word": (
            "I grew a {insult} as big as a bucket behind the {place}",
            "the recipe says one {insult}, peeled, and some {thing} on top",
            "the children dressed up as a {insult} for the {thing}",
            "lost near the {place}: one toy {insult}, {adjective} but loved",
            "is {insult} the right word in the crossword by the {place}",
            "our donkey is called {insult} and is {very} {adjective}",
        ),
        "reported": (
            "somebody called me a {insult} at the {place} and it hurt",
            "please do not write '{adjective} {insult}' here, we had that discussion",
            "the post that said 'you {insult}' was removed, thank you",
            "my grandmother used to say '{insult}' to the {thing}, never to people",
            "to those who shouted '{insult}' at {name} on {weekday}: that was not kind",
        ),
        "negated": (
            "you are not a {insult}, {name}, the {thing} is hard for everybody",
            "nobody here thinks you are {adjective}",
            "I would never call you a {insult}, I only asked about the {thing}",
            "no, {name} is no {insult}, {deed} takes years",
            "do not listen to them, you are anything but {adjective}",
        ),
        "self_mockery": (
            "I am such a {insult}, I forgot the {thing} at the {place}",
            "what a {adjective} {insult} I was to try {deed} on {weekday}",
            "silly me, {very} {adjective} as always, the {thing} was in my {belonging}",
            "call me a {insult} but I like the {thing}",
        ),
        "group_mention": (
            "the {group} invite everybody to the {place} on {weekday}",
            "I met two of the {group} while {deed}, lovely people",
            "the {group} have kept the {thing} going for years",
            "do the {group} also come to the {place} on {weekday}",
            "as one of the {group} I like the {thing}",
        ),
        "criticism": (
            "this plan for the {thing} is {adjective} from beginning to end",
            "what nonsense, the {place} cannot pay for the {thing}",
            "whoever decided on {deed} has not thought for a minute",
            "I am fed up with the {thing} and with everybody who defends it",
            "the {place} is run like {worthless} and you all know it",
            "your argument about the {thing} is {adjective}, {name}",
        ),
        "teasing": (
            "you daft {insult}, thank you for the {thing}",
            "ha, {name}, you old {insult}, see you at the {place}",
            "only you could mix up the {thing} and {worthless}, never change, {insult}",
            "who is the {adjective} one now, {name}, drinks are on you",
        ),
    },
    fillers=(
        "the {place} opens at {hour} on {weekday}",
        "I have been {deed} since spring",
        "there was a {good} {thing} on {weekday}",
        "it rained on the {thing} again",
        "my sister looks after the {thing} at the {place}",
        "we need {hour} volunteers for {deed}",
        "the minutes of the {place} are on the board",
        "I liked how the {thing} looked on {weekday}",
        "{name} wrote about {deed} last week",
        "you find the {thing} behind the {place}",
        "at {hour} we start {deed}",
        "as I said on {weekday}, the {thing} costs too much",
        "the bus to the {place} was late",
        "more about the {thing} on {weekday}",
        "everybody talks about {deed} these days",
        "I saw {name} near the {place}",
    ),
    softeners=(
        "no offence but",
        "maybe it is only me,",
        "with a smile:",
        "please do not take it badly:",
        "🙂",
        "just kidding a little:",
        "with respect,",
        "sorry to say it,",
    ),
    sharpeners=(
        "SERIOUSLY,",
        "for the last time:",
        "I mean it:",
        "how dare you.",
        "enough!!",
        "😡",
        "write this down:",
        "honestly now!",
    ),
    words={
        "very": words("absolute, complete, utter, total, perfect, thorough, certified"),
        "adjective": words(
            "useless, soggy, mouldy, half-baked, wobbly, hollow, noodle-headed, "
            "cabbage-brained, leaky, crumbly, lukewarm, rusty, daft, witless, stale, "
            "gormless, clueless, lumpy, squeaky, woolly, moth-eaten, clumsy, dull, pompous, "
            "tiresome, upside-down, underproved, slack, foggy, mossy"
        ),
        "insult": words(
            "turnip, muppet, doughnut, pudding, noodle, cabbage, teapot, wet sock, sponge, "
            "parsnip, gooseberry, dumpling, walnut, bucket, goose, pickle, numpty, "
            "nincompoop, clot, dollop, wet lettuce, spoon, haddock, crumpet, buffoon, "
            "windbag, trout, mop, soup ladle, cushion, sprout, potato, doorknob, coat hanger, "
            "plank, lampshade, fishcake, marrow, bollard, wheelbarrow"
        ),
        "an_insult": words("a turnip, a muppet, an onion, a plank, a doorknob, an oaf"),
        "insult_plural": words(
            "turnips, muppets, cabbages, doughnuts, windbags, numpties, planks, puddings, "
            "sprouts, bollards"
        ),
        "worthless": words(
            "a bucket of mud, a broken kettle, last year's porridge, an empty jam jar, a "
            "soggy umbrella, a sack of gravel, cold gravy, a deflated balloon"
        ),
        "belonging": words(
            "bicycle, umbrella, garden shed, left boot, best jumper, kettle, picnic, "
            "wheelbarrow, hat, sofa"
        ),
        "misfortune": words(
            "rusts, falls into the pond, smells of onions for ever, gets lost on the tram, is "
            "eaten by goats, squeaks until summer, leaks in every storm, sinks"
        ),
        "marvel": words("genius, masterpiece, treasure, hero, miracle, legend, star, expert"),
        "good": words("lovely, splendid, fine, cheerful, decent, pleasant, tidy, bright"),
        "well": words("well, nicely, smoothly, better than expected, without trouble"),
        "name": words(
            "Wimbrel, Tovey, Odalind, Pask, Merrin, Jorvane, Sib, Lunella, Brack, Hesper, "
            "Quillon, Nerys-Ann, Dob, Fennimore, Isk, Talwyn"
        ),
        "weekday": words("Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday"),
        "hour": words("seven, eight, nine, ten, eleven, twelve, three, four, five"),
    },
    topics={
        "allotments": {
            "thing": words(
                "compost heap, bean row, greenhouse, watering rota, marrow show, bee hotel, "
                "tool shed, seed swap"
            ),
            "place": words("upper allotments, potting hut, south gate, old orchard"),
            "deed": words("digging, pruning, sowing beans, turning compost, grafting"),
        },
        "trams": {
            "thing": words(
                "tram timetable, night tram, ticket machine, tram bell, line seven, shelter, "
                "season ticket, points heater"
            ),
            "place": words("Nethermill stop, tram depot, ferry terminus, bridge stop"),
            "deed": words("waiting for trams, changing lines, cycling instead, buying tickets"),
        },
        "cakes": {
            "thing": words(
                "cake contest, plum tart, ginger loaf, icing, judging sheet, cream bun, seed "
                "cake, jam shelf"
            ),
            "place": words("parish kitchen, tea tent, harbour bakery, village hall"),
            "deed": words("baking, whisking eggs, judging cakes, piping cream, tasting"),
        },
        "lighthouse": {
            "thing": words(
                "lighthouse lamp, spiral stair, fog horn, paint fund, keeper's log, lens, "
                "gull survey, open day"
            ),
            "place": words("Skerry Point, lighthouse yard, boat shed, keeper's cottage"),
            "deed": words("painting railings, polishing the lens, counting gulls, rowing over"),
        },
        "choir": {
            "thing": words(
                "winter concert, second verse, tenor row, hymn sheet, solo, rehearsal, piano, "
                "encore"
            ),
            "place": words("chapel, rehearsal room, bandstand, school hall"),
            "deed": words("singing in parts, sight-reading, humming, counting bars"),
        },
        "village_football": {
            "thing": words(
                "Sunday match, offside call, goal net, muddy pitch, half-time tea, away kit, "
                "penalty, trophy"
            ),
            "place": words("lower pitch, clubhouse, touchline, changing hut"),
            "deed": words("defending corners, refereeing, training, marking the lines"),
        },
        "kite_licences": {
            "thing": words(
                "kite licence, tail permit, wind fee, string inspection, form K9, kite "
                "tribunal, dragon kite"
            ),
            "place": words("kite office, dune car park, launch field"),
            "deed": words("flying kites, queueing for permits, untangling string"),
        },
        "comet_night": {
            "thing": words(
                "comet, telescope queue, blackout hour, star map, tail photograph, comet "
                "cocoa, dome"
            ),
            "place": words("observatory hill, dark meadow, dome car park"),
            "deed": words("watching the comet, adjusting lenses, switching lamps off"),
        },
    },
    groups=("Northshore residents", "hill shepherds", "harbour bakers", "lantern keepers"),
    belongings=(
        "as one of the {group},",
        "I asked the {group}:",
        "greetings from the {group},",
        "for the {group} and everybody else:",
    ),
)
