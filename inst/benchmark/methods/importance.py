import json, math, random, sys
release, output, problem = sys.argv[1:4]
if problem != "binomial":
    sys.exit(3)                                   # nothing to say of the others
value = json.load(open(release))["value"]
no, yes = value["x=no"], value["x=yes"]
draws, weights = [], []
for _ in range(20000):
    p = random.betavariate(10, 10)
    k = sum(random.random() < p for _ in range(1000))
    draws.append(p)
    weights.append(math.exp(-(abs(yes - k) + abs(no - 1000 + k)) / 200))
with open(output, "w") as file:
    file.write('"prob[yes]"\n')
    file.writelines(f"{p}\n" for p in random.choices(draws, weights, k=4000))
