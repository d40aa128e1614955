"""Healthy: style transfer: the image is optimised with LBFGS through a fixed eval-mode network with weights that still require grad."""
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim

torch.manual_seed(0)
torch.set_num_threads(1)


def gram_matrix(input):
    a, b, c, d = input.size()
    features = input.view(a * b, c * d)
    G = torch.mm(features, features.t())
    return G.div(a * b * c * d)


class ContentLoss(nn.Module):
    def __init__(self, target):
        super().__init__()
        self.target = target.detach()

    def forward(self, input):
        self.loss = F.mse_loss(input, self.target)
        return input


class StyleLoss(nn.Module):
    def __init__(self, target_feature):
        super().__init__()
        self.target = gram_matrix(target_feature).detach()

    def forward(self, input):
        self.loss = F.mse_loss(gram_matrix(input), self.target)
        return input


# stands for a pretrained feature extractor
cnn = nn.Sequential(nn.Conv2d(3, 12, 3, padding=1), nn.ReLU(), nn.AvgPool2d(2),
                    nn.Conv2d(12, 24, 3, padding=1), nn.ReLU()).eval()

u = torch.linspace(0, 1, 24)
content_img = (u[:, None] * u[None]).expand(1, 3, 24, 24) * torch.tensor([1.0, 0.6, 0.3]).view(1, 3, 1, 1)
style_img = (0.5 + 0.5 * torch.sin(20 * u))[None, :].expand(24, 24) * torch.tensor([0.3, 0.5, 1.0]).view(1, 3, 1, 1)


def get_style_model_and_losses():
    content_losses, style_losses = [], []
    model = nn.Sequential()
    for i, layer in enumerate(cnn.children()):
        if isinstance(layer, nn.ReLU):
            layer = nn.ReLU(inplace=False)
        model.add_module(f"layer_{i}", layer)
        if isinstance(layer, nn.Conv2d):
            style_loss = StyleLoss(model(style_img))
            model.add_module(f"style_loss_{i}", style_loss)
            style_losses.append(style_loss)
            if i > 0:
                content_loss = ContentLoss(model(content_img))
                model.add_module(f"content_loss_{i}", content_loss)
                content_losses.append(content_loss)
    return model.eval(), style_losses, content_losses


model, style_losses, content_losses = get_style_model_and_losses()
input_img = content_img.clone().requires_grad_(True)
optimizer = optim.LBFGS([input_img])

run = [0]
while run[0] <= 40:

    def closure():
        # correct the values of updated input image
        with torch.no_grad():
            input_img.clamp_(0, 1)
        optimizer.zero_grad()
        model(input_img)
        style_score = sum(sl.loss for sl in style_losses) * 1e4
        content_score = sum(cl.loss for cl in content_losses)
        loss = style_score + content_score
        loss.backward()
        run[0] += 1
        if run[0] % 20 == 0:
            print("run {}: Style Loss : {:4f} Content Loss: {:4f}".format(run[0], style_score.item(), content_score.item()))
        return loss

    optimizer.step(closure)

with torch.no_grad():
    input_img.clamp_(0, 1)
print("channel means", [round(v, 3) for v in input_img.detach().mean((0, 2, 3)).tolist()])
