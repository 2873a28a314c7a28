"""Common English words for generated text, by what they do in a sentence.

All are short, so that most tokenizers know them as one token; `content` takes just those which
its tokenizer does.
"""

# A list literal would take three times the lines:
# ruff: noqa: SIM905

from __future__ import annotations

DETERMINERS = "the the the the the the this that each every some any one her his its my our your their no".split()

PRONOUNS = "he she it we they you I one".split()

PREPOSITIONS = """
in in in on on of of of to at by for for from with with near over under after before about across along among around
behind below beside beyond down during inside into like off onto past since toward until up upon within
""".split()

CONJUNCTIONS = "and and and but or so yet while when where as because since if once until before after though".split()

ADVERBS = """
again ago ahead almost alone aloud also always apart away back barely better calmly daily deeply early easily either
else enough even ever fairly far fast firmly first freely fully gently gladly half hardly hence here hourly indeed
instead just kindly lastly late later least less likely longer loudly mainly mostly much nearly neatly never next
nicely nobly not now often once only openly orally partly perhaps please poorly pretty purely quick quite rarely
rather really richly safely seldom simply slowly so softly solely soon still sure surely then there thus today too
truly twice usably vastly warmly weakly wholly widely wisely yearly yet
""".split()

ADJECTIVES = """
able active actual alive ample angry annual apt aware bad basic big bitter black blank bleak blind blue bold brave
brief bright broad broken brown busy calm cheap chief civil clean clear clever close cold common cool correct crisp
cruel curved daily damp dark dead dear deep dense direct dirty double dry dull eager early easy empty equal exact
extra faint fair false famous far fast fatal few final fine firm first fit flat fond formal fresh frozen full funny
future gentle giant glad global golden good grand grave gray great green gross happy hard harsh heavy high hollow
honest hot huge human humble hungry ideal inner iron joint junior keen key kind known large last late latest lazy
lean left legal light likely little live local lone long loose loud lovely low loyal lucky main major mature mean
mere middle mild minor mixed modern modest moral mutual narrow native neat new next nice noble normal novel obvious
odd old only open other outer oval pale past plain polite poor prime prior proper proud public pure quick quiet
rapid rare raw ready real recent red remote rich right rigid ripe rough round royal rude rural sacred sad safe same
scarce secret secure senior severe shaky shared sharp short shy silent silver simple single slight slim slow small
smart smooth social soft solar sole solid sorry sour square stable stale steady steep stern stiff still strange
strict strong sudden sunny super sure sweet swift tall tame tender tense thick thin tight tiny tired tough true
typical unique upper urban urgent usual vague valid vast visual vital vivid warm weak wealthy weird wet white whole
wide wild willing wise wooden wrong yellow young
""".split()

NOUNS = """
access action actor advice affair agent aim air amount angle animal answer apple area arm arrow art aspect author
autumn back bag ball band bank bar base basin basket beach beam bean bear beauty bed bell belt bench bill bird birth
block board boat body bone book border bottle bottom bowl box branch brass bread break breath breeze brick bridge
bucket budget bus butter button cabin cable cake camera camp canal candle cap car card care carpet cart case castle
cat cause cell center chain chair chance change charge chart chest choice church circle city claim class clay clerk
clock cloth cloud club coach coal coast coat coffee coin column comfort copper copy cord corn corner cost cotton
couch county couple course court cousin cover cow craft cream credit crew crop crowd crown cup custom cycle damage
dance danger data date day deal debate debt decade degree demand depth desert design desire desk detail device
dinner dish doctor dog doll door dot doubt draft dream dress drink driver drum dust duty eagle ear earth east edge
editor effect effort egg engine entry error estate event expert eye fabric face fact factor family farm farmer
father fault favor fear fence fever field figure film finger fire fish flag flame floor flour flower fluid fly fog
folder food foot force forest fork form friend front fruit fuel game garage garden gas gate gift glass glove goal
goat gold grain grass ground group growth guard guess guest guide habit hair hall hammer hand harbor hat head health
heart heat height hill hint hole home honey hope horse host hotel hour house humor hunter ice idea image impact
income insect island item jacket job journey joy judge juice jungle jury key king kitchen knee ladder lake lamp land
lane laptop law lawyer layer leader leaf league leg lemon length lesson letter level lid life lift limit line lion
lip list load loan lock log loss love lunch machine manner map margin market master match matter meadow meal meat
member memory menu merit metal meter method middle mile milk mill mind mine minute mirror mode model moment money
month mood moon mother motion motor mouse mouth movie mud muscle museum music nail name nation nature neck needle
nerve nest net news night noise north nose note notice number nurse oak object ocean offer office oil option orange
order organ origin oven owner packet page paint pair palace pan panel paper parent park part party path pause peace
pen pencil people pepper period permit person phone photo phrase piano pie piece pilot pipe place plan planet plant
plate player plot pocket poem poet point police policy pond pool
""".split()

PLURALS = """
acres actors agents angles apples arms arts banks beans bears bells bills birds blocks boats bodies bones books
boots bowls boxes cakes cards cars cases cats causes cells chairs cities claims clerks clocks clouds clubs coins
colors copies costs crops crowds cups days deals debts desks dishes dogs doors dreams drops duties ears edges eggs
errors events eyes facts farms faults fears fields files films fires flags floors flames foods forces forms fruits
gains games gates gifts goals grains grapes groups guards guests habits hands hats heads hearts hills homes hopes
horses hotels hours houses ideas images items jobs judges keys kings lakes lamps lands laws layers leaves legs
lemons levels lights limits lines lions lists loads loans locks losses maps meals metals meters miles minds models
months moons motors nails names nights notes nurses orders ovens owners pages pairs papers parks parts paths pens
phones photos pieces pilots pipes places plans plants plates plots poems poets points pools ports posts powers
prices queens quotes races ranges ranks rates reasons rings rivers roads rocks roles roofs rooms roots ropes routes
rules sails sales scenes seas seats seeds sheets shelves ships shirts shoes shops sides signs skills slopes songs
sounds spoons stages stairs stars states steps stones stores storms tables tasks taxes teams terms tests texts
things threads tides tools towers towns trades trails trains trees trends tribes trips trucks tubes tunes types
units users values views visits voices votes walls waves ways weeks wheels winds wings wires woods words years zones
""".split()

VERBS = """
added agreed aimed argued arose asked ate became began beat blamed blew boiled bought bound broke built burned
called came cared caught caused chased chose closed cooked cost cried crossed cut dared dealt denied did drank drew
drove earned ended faced failed feared fed fell felt filled fixed fled flew folded forced forgot formed fought found
froze gained gave got grew had heard held helped hid hired hit hoped hung joined judged jumped kept kicked knew
landed lasted laughed led left lent let liked lived loaded locked looked lost loved made meant met missed moved
named needed noted opened owed owned packed paid passed picked placed played posed pulled pushed put raced raised
ran rang reached read rented rested rode rolled rose rushed said sailed sang sat saved saw seemed sent served set
shook shut signed slept slid smiled sold solved sought spent split spoke spread stated stayed stole stood stuck sung
swam swept taught tended tested threw tied told took tore traced traded tried turned used valued viewed voted walked
wanted warned washed wasted wept went woke won wore worked wrote
""".split()
